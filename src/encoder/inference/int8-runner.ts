import { loadKernel } from '../../engine/native/kernel.ts';
import { type LoadedAddon, loadAddon } from '../../engine/native/load-addon.ts';
import type { InstructionSet } from '../../engine/native/native-function.ts';

/** What runs an encoder in int8: the engine's pass, or onnxruntime with a graph. Their vectors differ slightly. */
export type Int8Runner = 'engine' | 'onnxruntime';

/** Why onnxruntime should run int8 on this machine, which is faster without AVX-512 VNNI; undefined if the engine should. */
export function withoutEngineInt8(): string | undefined {
  const loaded = loadKernel();
  if (!loaded.ok) return `the native engine cannot be used here (${loaded.reason})`;
  return hasVnni(loaded.kernel.encoderIsas('int8')) ? undefined : 'the processor has no AVX-512 VNNI';
}

/**
 * Settings of a session of onnxruntime with which sums of int8 products are exact. On x64 processors without AVX-512 VNNI, onnxruntime
 * adds two products in 16 bits, which can overflow, unless `x64quantprecision` chooses a slower way. With VNNI the sums are exact in any
 * case, and the slower way would take 1.5 times as long. Without the engine the processor is not known, so the slower way is chosen.
 */
export function integerProductSettings(engine: LoadedAddon = loadAddon()): Readonly<Record<string, string>> {
  return engine.ok && hasVnni(engine.addon.isas() as InstructionSet[]) ? {} : { x64quantprecision: '1' };
}

function hasVnni(isas: readonly InstructionSet[]): boolean {
  return isas.some(({ name, available }) => name === 'avx512-vnni' && available);
}
