"""How the orchestrator may treat a step: task wrappers, retry policies, wiring of real adapters, settings."""
