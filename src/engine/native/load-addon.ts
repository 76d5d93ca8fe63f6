import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { packageRoot } from '../../base/package-root.ts';
import { COLUMN_FUNCTIONS } from './column-functions.ts';
import { ENCODER_FUNCTIONS } from './encoder-functions.ts';
import { LEXICAL_FUNCTIONS } from './lexical-functions.ts';
import { findPrebuilt, type Machine, targetOf, thisMachine } from './prebuilt-addon.ts';
import { SEARCH_FUNCTIONS } from './search-functions.ts';

/** Every function of the addon (native/addon/entries.hpp). */
export const NATIVE_FUNCTIONS = {
  ...SEARCH_FUNCTIONS,
  ...LEXICAL_FUNCTIONS,
  ...COLUMN_FUNCTIONS,
  ...ENCODER_FUNCTIONS,
};

/** A loaded addon. */
export type Addon = Readonly<Record<keyof typeof NATIVE_FUNCTIONS, (...args: unknown[]) => unknown>>;

/** Where scripts/build-native.mjs puts the addon. @internal Exported for tests. */
export const ADDON_PATH = join(packageRoot, 'native', 'build', 'addon', 'trawl.node');

/** Where scripts/prebuild.mjs puts the addons that the package contains. */
const PREBUILDS = join(packageRoot, 'prebuilds');

/** Where a loaded addon comes from: compiled on this machine, or the target of a prebuilt one. */
export type AddonOrigin = 'compiled here' | `prebuilt for ${string}`;

export type LoadedAddon =
  | { readonly ok: true; readonly addon: Addon; readonly origin: AddonOrigin }
  /** `reason` says what was tried and why it could not be used. */
  | { readonly ok: false; readonly reason: string };

interface AddonPlaces {
  readonly compiled?: string;
  readonly prebuilds?: string;
  readonly machine?: Machine;
}

/** Loads the addon that was compiled on this machine, or else the prebuilt one that fits it. */
export function loadAddon({
  compiled = ADDON_PATH,
  prebuilds = PREBUILDS,
  machine = thisMachine(),
}: AddonPlaces = {}): LoadedAddon {
  const reasons: string[] = [];
  if (existsSync(compiled)) {
    const loaded = load(compiled, 'compiled here');
    if (loaded.ok) return loaded;
    reasons.push(loaded.reason);
  } else reasons.push(`${targetOf(machine)}: nothing was compiled here`);
  const found = findPrebuilt(prebuilds, machine);
  if (found.ok) {
    const loaded = load(found.path, `prebuilt for ${found.target}`);
    if (loaded.ok) return loaded;
    reasons.push(loaded.reason);
  } else reasons.push(found.reason);
  return { ok: false, reason: reasons.join('; ') };
}

/** Loads a binary, unless it lacks a function that the program calls: then it is of another version. */
function load(path: string, origin: AddonOrigin): LoadedAddon {
  let addon: Addon;
  try {
    addon = createRequire(import.meta.url)(path) as Addon;
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n');
    return { ok: false, reason: reason.includes(path) ? reason : `${path}: ${reason}` };
  }
  const missing = Object.keys(NATIVE_FUNCTIONS).filter((name) => typeof addon[name as keyof Addon] !== 'function');
  if (missing.length === 0) return { ok: true, addon, origin };
  return {
    ok: false,
    reason: `${path} is of another version: it has no ${missing.join(', ')}; run npm run build, or npm rebuild in an installed package`,
  };
}
