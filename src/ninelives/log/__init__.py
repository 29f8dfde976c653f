"""The journal as pure facts: events, and the views that are folded from them."""
