"""Where journals live: one contract (`base`), one implementation for each database."""
