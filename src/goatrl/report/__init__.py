"""Records to tables and figures. Nothing here trains."""
