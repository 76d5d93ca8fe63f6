import type { InstructionSet } from '../../engine/native/instruction-set.ts';
import { type LoadedAddon, loadAddon } from '../../engine/native/load-addon.ts';

/**
 * Settings of a session of onnxruntime with which sums of int8 products are exact. On x64 processors without AVX-512 VNNI, onnxruntime
 * adds two products in 16 bits, which can overflow, unless `x64quantprecision` chooses a slower way. With VNNI the sums are exact in any
 * case, and the slower way would take 1.5 times as long. Without the engine the processor is not known, so the slower way is chosen.
 */
export function integerProductSettings(engine: LoadedAddon = loadAddon()): Readonly<Record<string, string>> {
  const isas = engine.ok ? (engine.addon.isas() as InstructionSet[]) : [];
  const hasVnni = isas.some(({ name, available }) => name === 'avx512-vnni' && available);
  return hasVnni ? {} : { x64quantprecision: '1' };
}
