"""Public fakes at the seams: an outside world that counts, a model that follows a script.

They are part of the product: the crash tests, the demo and a user's own tests stand on them.
"""
