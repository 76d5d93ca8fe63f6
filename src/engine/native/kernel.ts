import { environmentVariable } from '../../base/options/environment.ts';
import { availableCores } from '../../base/system/cores.ts';
import { type Addon, type AddonOrigin, loadAddon, NATIVE_FUNCTIONS } from './load-addon.ts';
import { type Functions, functionsOf } from './native-function.ts';

export type { InstructionSet } from './native-function.ts';
export type { CheckedRows, ChosenIsas, NativeRows } from './search-functions.ts';

/** The native engine: the functions of the addon, and how it was loaded. */
export interface Kernel extends Functions<typeof NATIVE_FUNCTIONS> {
  /** The instruction set in use: the fastest of the machine, or the one TRAWL_ISA names. */
  readonly isa: string;
  /** The instruction set that TRAWL_ISA names; if empty, the engine chooses by the number of queries. */
  readonly namedIsa: string;
  readonly origin: AddonOrigin;
}

/** @internal Exported for tests. @throws TrawlError CONFIG_INVALID if TRAWL_ISA names an instruction set that this machine does not have. */
export function makeKernel(addon: Addon, origin: AddonOrigin = 'compiled here'): Kernel {
  const functions = functionsOf(NATIVE_FUNCTIONS, addon);
  const namedIsa = environmentVariable('TRAWL_ISA') ?? '';
  const isa = functions.selectIsa(namedIsa);
  // In a worker thread, keep the number that the main thread has set.
  if (functions.threads() === 0) functions.setThreads(availableCores());
  return { ...functions, isa, namedIsa, origin };
}

type LoadedKernel =
  | { readonly ok: true; readonly kernel: Kernel }
  /** `reason` explains why the native engine cannot be used. */
  | { readonly ok: false; readonly reason: string };

let loaded: LoadedKernel | undefined;

/**
 * Loads the native engine once. If it cannot be used, because no prebuilt binary fits and there was no compiler, searches run in
 * TypeScript.
 *
 * @throws TrawlError CONFIG_INVALID if TRAWL_ISA names an instruction set that this machine does not have.
 */
export function loadKernel(): LoadedKernel {
  if (loaded !== undefined) return loaded;
  const found = loadAddon();
  loaded = found.ok ? { ok: true, kernel: makeKernel(found.addon, found.origin) } : found;
  return loaded;
}
