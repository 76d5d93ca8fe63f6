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
  const named = environmentVariable('TRAWL_ISA') ?? '';
  // Builds and encoders, which have no other engine, take the fastest.
  const namedIsa = named === REFERENCE ? '' : named;
  const isa = functions.selectIsa(namedIsa);
  // In a worker thread, keep the number that the main thread has set.
  if (functions.threads() === 0) functions.setThreads(availableCores());
  return { ...functions, isa, namedIsa, origin };
}

/** The value of TRAWL_ISA that lets searches run in TypeScript. */
const REFERENCE = 'reference';

type LoadedKernel =
  | { readonly ok: true; readonly kernel: Kernel }
  /** `reason` explains why the native engine cannot be used. */
  | { readonly ok: false; readonly reason: string };

/**
 * As `loadKernel`, for searches: TRAWL_ISA=reference chooses TypeScript. Without the native engine for another reason, `onMissing` is called
 * with the reason.
 */
export function searchKernel(onMissing: (reason: string) => void = () => undefined): Kernel | undefined {
  if (environmentVariable('TRAWL_ISA') === REFERENCE) return undefined;
  const loaded = loadKernel();
  if (loaded.ok) return loaded.kernel;
  onMissing(loaded.reason);
  return undefined;
}

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
