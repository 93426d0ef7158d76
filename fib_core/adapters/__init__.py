"""The only rooms that touch S3, MLflow, disk or processes; chosen in tasks/wiring.py."""
