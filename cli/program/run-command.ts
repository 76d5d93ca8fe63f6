import { asTrawlError, TrawlError, usageError } from '../../src/base/errors.ts';
import { printable } from '../../src/base/format.ts';
import { takenVariable } from '../../src/base/options/environment.ts';
import { exitProcess } from '../../src/base/system/exit-process.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { type Command, EXIT, type Program, type RunSettings } from './command.ts';
import { COMMAND_NAMES, loadCommand, loadCommands } from './commands.ts';

/** Runs a command to its end and resolves to the exit code. Errors are reported on stderr. */
export async function runCommand(
  command: Command,
  argv: readonly string[],
  { out = (text) => void process.stdout.write(`${text}\n`), jsonErrors, argumentsOnly = false }: RunSettings = {},
): Promise<number> {
  const interrupt = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    if (!interrupt.signal.aborted) interrupt.abort(name);
    else if (!(command.resumable === true && name === 'SIGTERM' && interrupt.signal.reason === 'SIGTERM')) {
      exitProcess(EXIT.interrupted);
    }
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const unwatch = onEndOfNpm(() => {
    if (!interrupt.signal.aborted) onSignal('SIGTERM');
  });
  let json = jsonErrors ?? argv.includes('--json');
  try {
    const call = resolveCall(command, argv, { argumentsOnly });
    json = jsonErrors ?? call.json;
    checkPositionals(command, call.positionals);
    const note = (text: string): void => void (call.quiet || process.stderr.write(`${text}\n`));
    return await call.run({ signal: interrupt.signal, out, note, program });
  } catch (error) {
    const known = asTrawlError(error);
    const interrupted = known.code === 'CANCELLED' && interrupt.signal.aborted;
    const resumable = interrupted && known.details.resumable === true;
    report(interrupted && !resumable ? new TrawlError('CANCELLED', 'Interrupted.') : known, json);
    if (known.code === 'USAGE') return EXIT.usage;
    if (resumable && interrupt.signal.reason === 'SIGTERM') return EXIT.resumable;
    return interrupted ? EXIT.interrupted : EXIT.failed;
  } finally {
    unwatch();
    // Without a handler, a repeated signal would kill the process before it exits with its exit code.
    if (interrupt.signal.aborted) process.on(interrupt.signal.reason, () => undefined);
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

/** Whether npm runs the program in a shell of its own: for `npx trawl` and `npm run demo`. */
const startedByNpm = /^'?(?:\S*\/)?trawl'?$|scripts\/demo\.mjs$/.test(
  // Programs that this one starts are not npm's.
  takenVariable('npm_lifecycle_script') ?? '',
);
const CHECK_PARENT_MS = 250;

/**
 * Calls `end` when the shell has ended in which npm runs the program. npm passes SIGTERM on to its shell, which ends without passing it on.
 *
 * @returns a function that ends the check.
 */
function onEndOfNpm(end: () => void): () => void {
  if (!startedByNpm) return () => undefined;
  const { ppid } = process;
  const timer = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(timer);
    end();
  }, CHECK_PARENT_MS).unref();
  return () => clearInterval(timer);
}

const program: Program = {
  commands: loadCommands,
  run: async (name, argv, settings) => runCommand((await loadCommand(name))!, argv, settings),
};

/** @throws TrawlError USAGE or CONFIG_INVALID. */
export function resolveCall(
  command: Command,
  argv: readonly string[],
  { argumentsOnly = false }: Pick<RunSettings, 'argumentsOnly'> = {},
): ReturnType<Command['resolve']> {
  return command.resolve({ command: command.name, commands: COMMAND_NAMES, argv, argumentsOnly });
}

function checkPositionals(command: Command, given: readonly string[]): void {
  const { usage } = command.positionals;
  const places = usage.split(' ').filter((place) => place !== '');
  const { min = places.filter((place) => place.startsWith('<')).length, max = places.length } = command.positionals;
  if (command.takesStoreAddress !== true && given.some(isPublishedAddress)) {
    throw usageError(
      `trawl ${command.name} does not take an address in Milvus or OpenSearch; publish, serve, mcp, search, eval, verify, inspect and doctor do. Name the folder of the index.`,
    );
  }
  if (given.length >= min && given.length <= max) return;
  const missing = places[given.length];
  const problem =
    given.length < min
      ? `${missing} is missing`
      : `Too many arguments (${given.slice(max).join(' ')}; quote a text with spaces)`;
  throw usageError(`${problem}: trawl ${command.name} ${usage}. See \`trawl ${command.name} --help\`.`);
}

/** Writes an error to stderr. */
export function report(error: TrawlError, json: boolean): void {
  if (json) {
    const { code, message, details } = error;
    process.stderr.write(`${JSON.stringify({ error: { code, message, details } })}\n`);
    return;
  }
  const stack = error.code === 'INTERNAL' && error.cause instanceof Error ? `\n${error.cause.stack}` : '';
  process.stderr.write(`trawl: ${printable(error.message)} [${error.code}]${stack}\n`);
}
