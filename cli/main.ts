import { asTrawlError, TrawlError } from '../src/errors.ts';
import { closestTo } from '../src/options/closest.ts';
import { resolveOptions } from '../src/options/resolve-options.ts';
import { packageVersion } from '../src/package-root.ts';
import { COMMON_OPTIONS, type Command, EXIT } from './command.ts';
import { COMMANDS } from './commands.ts';
import { commandHelp, programHelp } from './help.ts';

/** Runs the command line and resolves to the exit code. Ending the process is left to the caller. */
export async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    const command = COMMANDS.find((candidate) => candidate.name === rest[0]);
    process.stdout.write(
      `${command === undefined ? programHelp(COMMANDS, packageVersion) : commandHelp(complete(command))}\n`,
    );
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  if (name === '--version' || name === '-V') {
    process.stdout.write(`${packageVersion}\n`);
    return EXIT.ok;
  }
  const found = COMMANDS.find((candidate) => candidate.name === name);
  if (found === undefined) {
    const near = closestTo(
      name,
      COMMANDS.map((candidate) => candidate.name),
    );
    process.stderr.write(
      `trawl: unknown command ${name}${near === undefined ? '' : `; did you mean ${near}?`} See \`trawl --help\`.\n`,
    );
    return EXIT.usage;
  }
  const command = complete(found);
  if (rest.includes('--help') || rest.includes('-h')) {
    process.stdout.write(`${commandHelp(command)}\n`);
    return EXIT.ok;
  }
  return runCommand(command, rest);
}

/** With the options that every command has. */
function complete(command: Command): Command {
  return { ...command, options: { ...command.options, ...COMMON_OPTIONS } };
}

async function runCommand(command: Command, argv: readonly string[]): Promise<number> {
  const interrupt = new AbortController();
  const onSignal = (): void => {
    if (interrupt.signal.aborted) process.exit(EXIT.interrupted);
    interrupt.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  let json = argv.includes('--json');
  try {
    const { options, positionals, given } = resolveOptions(
      { ...command.options, ...COMMON_OPTIONS },
      { command: command.name, argv },
    );
    json = options.json;
    checkPositionals(command, positionals);
    return await command.run({
      options,
      positionals,
      given,
      signal: interrupt.signal,
      out: (text) => process.stdout.write(`${text}\n`),
      note: (text) => {
        if (!options.quiet) process.stderr.write(`${text}\n`);
      },
    });
  } catch (error) {
    const known = asTrawlError(error);
    report(known, json);
    if (known.code === 'USAGE') return EXIT.usage;
    return known.code === 'CANCELLED' && interrupt.signal.aborted ? EXIT.interrupted : EXIT.failed;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

function checkPositionals(command: Command, given: readonly string[]): void {
  const { min, max, usage } = command.positionals;
  if (given.length >= min && given.length <= max) return;
  const problem = given.length < min ? 'Something is missing' : `Too many arguments (${given.slice(max).join(' ')})`;
  throw new TrawlError('USAGE', `${problem}: trawl ${command.name} ${usage}. See \`trawl ${command.name} --help\`.`);
}

function report(error: TrawlError, json: boolean): void {
  if (json) {
    const { code, message, details } = error;
    process.stderr.write(`${JSON.stringify({ error: { code, message, details } })}\n`);
    return;
  }
  const stack = error.code === 'INTERNAL' && error.cause instanceof Error ? `\n${error.cause.stack}` : '';
  process.stderr.write(`trawl: ${error.message} [${error.code}]${stack}\n`);
}
