import { asTrawlError, TrawlError } from '../src/errors.ts';
import { closestTo } from '../src/options/closest.ts';
import { resolveOptions } from '../src/options/resolve-options.ts';
import { packageVersion } from '../src/package-root.ts';
import { COMMON_OPTIONS, type Command, EXIT } from './command.ts';
import { COMMAND_NAMES, loadCommand, loadCommands } from './commands.ts';
import { printable } from './format.ts';
import { commandHelp, programHelp } from './help.ts';
import { isLaunchLine } from './launch-lines.ts';
import { guardOutputStreams } from './output-streams.ts';

/** Runs the command line and resolves to the exit code. Ending the process is left to the caller. */
export async function main(argv: readonly string[]): Promise<number> {
  guardOutputStreams();
  const [name, ...rest] = argv;
  if (name === undefined) {
    // Not what a pipe or a script asked for.
    process.stderr.write(`${programHelp(await loadCommands(), packageVersion)}\n`);
    return EXIT.usage;
  }
  const json = rest.includes('--json');
  if (name === '--help' || name === '-h' || name === 'help') {
    const topic = rest.find((argument) => !argument.startsWith('-'));
    const command = topic === undefined ? undefined : await loadCommand(topic);
    if (topic !== undefined && command === undefined) return unknownCommand(topic, json);
    process.stdout.write(
      `${command === undefined ? programHelp(await loadCommands(), packageVersion) : commandHelp(complete(command))}\n`,
    );
    return EXIT.ok;
  }
  if (name === '--version' || name === '-V') {
    process.stdout.write(`${packageVersion}\n`);
    return EXIT.ok;
  }
  const found = await loadCommand(name);
  if (found === undefined) return unknownCommand(name, json);
  const command = complete(found);
  if (asksForHelp(rest)) {
    process.stdout.write(`${commandHelp(command)}\n`);
    return EXIT.ok;
  }
  if (name === 'serve' && isLaunchLine(rest)) return runLaunchLine(rest, json);
  return runCommand(command, rest);
}

/** Another server's command line: our commands that do the same, as far as their work is not done yet. */
async function runLaunchLine(argv: readonly string[], json: boolean): Promise<number> {
  const quiet = argv.includes('--quiet');
  // Loaded here: with what it needs, `trawl --version` would take six times as long.
  const { planLaunchLine, shownCommand } = await import('./serve-launch-line.ts');
  try {
    const say = (text: string): void => void (quiet || process.stderr.write(`${text}\n`));
    let { steps, remarks } = await planLaunchLine(argv);
    // A misspelt option is told before a model is fetched or millions of vectors are read.
    const [server, ...serveArgv] = steps.at(-1)!;
    resolveAll(complete((await loadCommand(server!))!), serveArgv);
    for (const remark of remarks) say(remark);
    while (steps.length > 0) {
      const [[name, ...rest], ...others] = steps as [string[], ...string[][]];
      say(shownCommand([name!, ...rest]));
      // Only the last one's result is what was asked for on standard output.
      const last = others.length === 0;
      const flags = [...(last ? [] : ['--no-json']), ...(quiet ? ['--quiet'] : [])];
      const streams = { jsonErrors: json, ...(last ? {} : { out: say }) };
      const code = await runCommand(complete((await loadCommand(name!))!), [...flags, ...rest], streams);
      if (code !== EXIT.ok) return code;
      // What a model takes is known once it is there.
      steps = name === 'model' ? (await planLaunchLine(argv)).steps : others;
    }
    return EXIT.ok;
  } catch (error) {
    const known = asTrawlError(error);
    report(known, json);
    return known.code === 'USAGE' ? EXIT.usage : EXIT.failed;
  }
}

/** Before a `--`: what stands behind it is an argument, whatever it looks like. */
function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end < 0 ? undefined : end).some((argument) => argument === '--help' || argument === '-h');
}

function unknownCommand(name: string, json: boolean): number {
  const near = closestTo(name, COMMAND_NAMES);
  const problem = name.startsWith('-')
    ? `The command comes first, then its options: trawl <command> ${name}.`
    : `Unknown command ${name}${near === undefined ? '.' : `; did you mean ${near}?`}`;
  report(new TrawlError('USAGE', `${problem} See \`trawl --help\`.`), json);
  return EXIT.usage;
}

/** With the options that every command has. */
function complete(command: Command): Command {
  return { ...command, options: { ...command.options, ...COMMON_OPTIONS } };
}

function resolveAll(command: Command, argv: readonly string[]) {
  const given = { command: command.name, commands: COMMAND_NAMES, argv };
  return resolveOptions({ ...command.options, ...COMMON_OPTIONS }, given);
}

interface Streams {
  /** Takes the results; absent, they go to standard output. */
  readonly out?: (text: string) => void;
  /** Absent, errors are JSON where results are. */
  readonly jsonErrors?: boolean;
}

async function runCommand(
  command: Command,
  argv: readonly string[],
  { out = (text) => void process.stdout.write(`${text}\n`), jsonErrors }: Streams = {},
): Promise<number> {
  const interrupt = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    if (!interrupt.signal.aborted) interrupt.abort(name);
    else if (!(command.resumable === true && name === 'SIGTERM' && interrupt.signal.reason === 'SIGTERM')) {
      process.exit(EXIT.interrupted);
    }
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  let json = jsonErrors ?? argv.includes('--json');
  try {
    const { options, positionals, given } = resolveAll(command, argv);
    json = jsonErrors ?? options.json;
    checkPositionals(command, positionals);
    return await command.run({
      options,
      positionals,
      given,
      signal: interrupt.signal,
      out,
      note: (text) => {
        if (!options.quiet) process.stderr.write(`${text}\n`);
      },
    });
  } catch (error) {
    const known = asTrawlError(error);
    const interrupted = known.code === 'CANCELLED' && interrupt.signal.aborted;
    const resumable = interrupted && known.details['resumable'] === true;
    report(interrupted && !resumable ? new TrawlError('CANCELLED', 'Interrupted.') : known, json);
    if (known.code === 'USAGE') return EXIT.usage;
    if (resumable && interrupt.signal.reason === 'SIGTERM') return EXIT.resumable;
    return interrupted ? EXIT.interrupted : EXIT.failed;
  } finally {
    // One that comes again between here and the end would be the end, and the exit code lost.
    if (interrupt.signal.aborted) process.on(interrupt.signal.reason, () => undefined);
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

function checkPositionals(command: Command, given: readonly string[]): void {
  const { min, max, usage } = command.positionals;
  if (given.length >= min && given.length <= max) return;
  const missing = usage.split(' ')[given.length];
  const problem =
    given.length < min
      ? `${missing} is missing`
      : `Too many arguments (${given.slice(max).join(' ')}; quote a text with spaces)`;
  throw new TrawlError('USAGE', `${problem}: trawl ${command.name} ${usage}. See \`trawl ${command.name} --help\`.`);
}

function report(error: TrawlError, json: boolean): void {
  if (json) {
    const { code, message, details } = error;
    process.stderr.write(`${JSON.stringify({ error: { code, message, details } })}\n`);
    return;
  }
  const stack = error.code === 'INTERNAL' && error.cause instanceof Error ? `\n${error.cause.stack}` : '';
  process.stderr.write(`trawl: ${printable(error.message)} [${error.code}]${stack}\n`);
}
