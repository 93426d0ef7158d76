"""What each step means. No Prefect below; rooms never import rooms; torch only in device, builders and runtime."""
