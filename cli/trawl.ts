#!/usr/bin/env node
import { main } from './main.ts';

// Not process.exit: what is written to a pipe has to arrive, and open work has to end by itself.
process.exitCode = await main(process.argv.slice(2));
