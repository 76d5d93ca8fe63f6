import { loadKernel } from '../../engine/native/kernel.ts';

/** What runs an encoder in int8: the engine's pass, or onnxruntime with a graph. Their vectors differ slightly. */
export type Int8Runner = 'engine' | 'onnxruntime';

/** Why the engine's pass in int8 is not to be used on this machine; null if it is: onnxruntime is faster without AVX-512 VNNI. */
export function withoutEngineInt8(): string | null {
  const loaded = loadKernel();
  if (!loaded.ok) return `the native engine cannot be used here (${loaded.reason})`;
  const isas = loaded.kernel.encoderIsas('int8');
  const hasVnni = isas.some(({ name, available }) => name === 'avx512-vnni' && available);
  return hasVnni ? null : 'the processor has no AVX-512 VNNI';
}
