"""A person's vault as a whole: finding or beginning a memory, recovery, the sheet, others' bundles, checking this device."""
