import { type LoadedAddon, loadAddon } from '../../native/load-addon.ts';

/**
 * Settings of a session of onnxruntime with which products of 8-bit integers are exact. On x64 processors without AVX-512 VNNI, onnxruntime adds two
 * products in 16 bits, which overflow, unless this setting chooses a slower way. With VNNI the sums are exact and the slower way takes
 * 1.5 times as long, so the setting is for the others, and for processors that are not known because the engine is missing.
 */
export function integerProductSettings(engine: LoadedAddon = loadAddon()): Readonly<Record<string, string>> {
  const hasVnni = engine.ok && engine.addon.isas().some(({ name, available }) => name === 'avx512-vnni' && available);
  return hasVnni ? {} : { x64quantprecision: '1' };
}
