"""How the binaries that people run are linked."""

# Functions of the same code are linked once, as gold and lld can: a twentieth of the server's bytes, most of it
# templates. `safe` leaves out functions whose address is taken, so that addresses differ as the language has it; a
# stack or a profile may show the name of another function of the same code.
LINKED_SMALL = ["-Wl,--icf=safe"]
