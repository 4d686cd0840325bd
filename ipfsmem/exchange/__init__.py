"""What other programs' memories become here, and memories of ours in the forms of others."""
