"""The user's own databases: one module for each driver, over what they share in `protocol`."""
