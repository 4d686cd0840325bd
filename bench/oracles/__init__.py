"""What this program does today, as files: a rebuild keeps each figure, or lists the difference with its reason."""
