import type { Command } from './command.ts';
import { benchCommand } from './commands/bench.ts';
import { doctorCommand } from './commands/doctor.ts';
import { evalCommand } from './commands/eval.ts';
import { indexCommand } from './commands/index.ts';
import { inspectCommand } from './commands/inspect.ts';
import { mergeCommand } from './commands/merge.ts';
import { modelCommand } from './commands/model.ts';
import { optimizeCommand } from './commands/optimize.ts';
import { prepareCommand } from './commands/prepare.ts';
import { searchCommand } from './commands/search.ts';
import { serveCommand } from './commands/serve.ts';
import { verifyCommand } from './commands/verify.ts';

/** In the order a newcomer meets them. */
export const COMMANDS: readonly Command[] = [
  modelCommand,
  prepareCommand,
  indexCommand,
  mergeCommand,
  serveCommand,
  searchCommand,
  evalCommand,
  inspectCommand,
  optimizeCommand,
  verifyCommand,
  doctorCommand,
  benchCommand,
];
