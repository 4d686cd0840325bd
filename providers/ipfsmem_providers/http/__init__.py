"""What providers share that speak HTTP: one client with its limits, answers, bodies, errors."""
