// `trawl` from the single files of dist/, so that a module that is preloaded can replace parts of it.
import { main } from '../../cli/program/main.ts';

process.exitCode = await main(process.argv.slice(2));
