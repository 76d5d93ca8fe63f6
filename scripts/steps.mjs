// Functions for the steps of the set-up: run commands, report progress, fail.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

let ticking;
const running = new Set();

/** Prints the step, and on a terminal a dot every five seconds. @returns the start time, for `done`. */
export function announce(doing) {
  process.stderr.write(`${doing} ...`);
  if (process.stderr.isTTY) ticking = setInterval(() => process.stderr.write('.'), 5000);
  return performance.now();
}

export function done(started) {
  clearInterval(ticking);
  process.stderr.write(` done in ${((performance.now() - started) / 1000).toFixed(1)} s\n`);
}

/** Prints the message, ends the running commands and exits with 1. */
export function fail(message) {
  clearInterval(ticking);
  stopRunning();
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** Ends the running commands. */
export function stopRunning() {
  for (const child of running) child.kill();
}

/** Runs a command, by default in the root. If it fails, prints its output and `onFailure`, and exits. */
export async function run(command, args, { cwd = root, env = process.env, onFailure }) {
  const output = await outputOfFailure(command, args, { cwd, env });
  if (output !== undefined) fail(`\n${withoutNoise(output)}\n${onFailure}`);
}

/** Runs npm: the one that started this process, else the one on PATH. */
export function runNpm(args, options) {
  const npm = process.env.npm_execpath;
  const [command, first] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  return run(command, [...first, ...args], options);
}

/** Resolves to undefined if the command succeeds, else to its output. */
export function outputOfFailure(command, args, { cwd, env }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    child.on('error', (error) => resolve(`${command}: ${error.message}`));
    child.on('close', (code) => {
      running.delete(child);
      resolve(code === 0 ? undefined : Buffer.concat(output).toString());
    });
  });
}

/** Removes npm's warnings about settings of other programs. */
function withoutNoise(output) {
  return output.replaceAll(/^npm (warn Unknown|notice).*\n/gm, '');
}

export function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** The files below a folder whose names have the ending; none if the folder does not exist. */
export function filesBelow(folder, ending) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(path, ending);
    return entry.name.endsWith(ending) ? [path] : [];
  });
}
