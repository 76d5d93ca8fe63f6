// Installs packages into the user's cache folder, once for each version of their list. Used before anything is installed, so this
// file and its imports must run on Node.js 20.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isRunning, runNpm } from './steps.mjs';

/** The path of `name` in Trawl's cache folder. */
export function cachePath(name) {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'trawl', name);
}

/**
 * Installs the packages of a list, whose members are the texts of `package.json` and `package-lock.json`, into `folder`, unless it exists.
 * `check` sees the new folder before it gets its name.
 */
export async function installOnce(folder, list, { onFailure, check = () => {} }) {
  if (existsSync(folder)) return;
  mkdirSync(dirname(folder), { recursive: true });
  removeLeftovers(folder);
  // In another folder first: two set-ups may run at once, and a killed one must not leave an incomplete folder.
  const made = `${folder}.${process.pid}`;
  mkdirSync(made);
  for (const [name, text] of Object.entries(list)) writeFileSync(join(made, name), text);
  await runNpm(['ci', '--prefix', made, '--include=optional', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: made,
    onFailure,
  });
  check(made);
  try {
    renameSync(made, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(made, { recursive: true, force: true });
  }
}

/** Removes the folders of killed set-ups. */
function removeLeftovers(folder) {
  const parent = dirname(folder);
  for (const name of readdirSync(parent)) {
    const path = join(parent, name);
    const pid = path.startsWith(`${folder}.`) ? path.slice(folder.length + 1) : '';
    if (/^\d+$/.test(pid) && !isRunning(Number(pid))) rmSync(path, { recursive: true, force: true });
  }
}
