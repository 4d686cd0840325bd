"""A vault as a whole: find or create it, recovery, recovery sheet, foreign bundles, checks, rescue of damaged databases."""
