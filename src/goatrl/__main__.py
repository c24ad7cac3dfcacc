from goatrl.cli import main

raise SystemExit(main())
