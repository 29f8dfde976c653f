"""The crash lab: kills a workflow's process at every boundary, and judges what became of it."""
