"""Adapters to what lives outside: model providers. None is imported before it is used."""
