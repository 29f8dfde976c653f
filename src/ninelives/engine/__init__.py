"""Runs workflows: supersteps, ownership, recovery."""
