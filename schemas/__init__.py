"""What the words mean: frozen records and table contracts. Plain data, no I/O, nothing imported eagerly."""
