"""Operations on exports and imports, `memory.bundles`."""
