"""Workflows as graphs: executors, edges, validation. Definitions only; nothing runs here."""
