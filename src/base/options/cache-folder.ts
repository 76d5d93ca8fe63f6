import { homedir } from 'node:os';
import { join } from 'node:path';
import { environmentVariable } from './resolve-options.ts';

/** The folder of a program in the user's cache: `$XDG_CACHE_HOME/name`, or `~/.cache/name` if the variable is not set or empty. */
export function cacheFolder(name: string): string {
  return join(environmentVariable('XDG_CACHE_HOME') || join(homedir(), '.cache'), name);
}
