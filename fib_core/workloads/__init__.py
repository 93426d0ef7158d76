"""Calls as shapes: axis classes, length structures, families, invented points, and which calls are worth measuring."""
