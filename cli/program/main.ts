import { isNodeError, usageError } from '../../src/base/errors.ts';
import { closestTo } from '../../src/base/options/closest.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { exitProcess } from '../../src/base/system/exit-process.ts';
import { isLaunchLine } from '../launch/launch-lines.ts';
import { EXIT } from './command.ts';
import { COMMAND_NAMES, loadCommand, loadCommands } from './commands.ts';
import { commandHelp, programHelp } from './help.ts';
import { report, runCommand } from './run-command.ts';

/** Runs the command line and resolves to the exit code. The caller ends the process. */
export async function main(argv: readonly string[]): Promise<number> {
  guardOutputStreams();
  const [name, ...rest] = argv;
  if (name === undefined) {
    process.stderr.write(`${programHelp(await loadCommands(), packageVersion)}\n`);
    return EXIT.usage;
  }
  if (name === '--version' || name === '-V') return print(packageVersion);
  const json = rest.includes('--json');
  if (name === '--help' || name === '-h' || name === 'help') {
    const topic = rest.find((argument) => !argument.startsWith('-'));
    if (topic === undefined) return print(programHelp(await loadCommands(), packageVersion));
    const command = await loadCommand(topic);
    return command === undefined ? unknownCommand(topic, json) : print(commandHelp(command));
  }
  const command = await loadCommand(name);
  if (command === undefined) return unknownCommand(name, json);
  if (asksForHelp(rest)) return print(commandHelp(command));
  if (name === 'serve' && isLaunchLine(rest)) {
    // Imported here because loading it takes several times as long as all that `trawl --version` needs.
    const { runLaunchLine } = await import('../launch/run-launch-line.ts');
    return runLaunchLine(rest, json);
  }
  return runCommand(command, rest);
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return EXIT.ok;
}

/** Whether --help or -h is among the options. Arguments after `--` are not options. */
function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end < 0 ? undefined : end).some((argument) => argument === '--help' || argument === '-h');
}

function unknownCommand(name: string, json: boolean): number {
  const near = closestTo(name, COMMAND_NAMES);
  const problem = name.startsWith('-')
    ? `The command comes first, then its options: trawl <command> ${name}.`
    : `Unknown command ${name}${near === undefined ? '.' : `; did you mean ${near}?`}`;
  report(usageError(`${problem} See \`trawl --help\`.`), json);
  return EXIT.usage;
}

let guarded = false;

/**
 * Handles write errors of standard output and standard error. A reader that closes the pipe early (`trawl search … | head`) is not
 * an error: the remaining output is dropped and the command finishes. Any other error, such as a full disk, ends the process.
 */
function guardOutputStreams(): void {
  if (guarded) return;
  guarded = true;
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', (error) => {
    if (isNodeError(error) && error.code === 'EPIPE') return;
    process.stderr.write(`trawl: standard output cannot be written: ${error.message}\n`);
    exitProcess(EXIT.failed);
  });
}
