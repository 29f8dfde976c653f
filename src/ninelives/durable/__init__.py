"""Durable operations: what a handler does through its context is recorded before it counts."""
