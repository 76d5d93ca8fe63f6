import { join } from 'node:path';
import type { Pooling, Precision } from '../../src/encoder/identity/model-identity.ts';
import { type Int8Runner, withoutEngineInt8 } from '../../src/encoder/inference/int8-runner.ts';
import type { EnginePrecision } from '../../src/encoder/model/engine-weights.ts';
import type { EnginePass } from './encoder-family.ts';
import type { PlannedGraph } from './model-plan.ts';
import { type NativePart, nativeBytes, writeNative } from './native-weights.ts';

/** The parts of an encoder's plan that decide whether the engine can run it. */
interface EngineFacts {
  /** Absent if the engine has no pass of the architecture. */
  readonly engine: EnginePass | undefined;
  readonly hasModules: boolean;
  readonly pooling: Pooling;
  /** Default: the engine, if it is fast on this machine. */
  readonly int8: Int8Runner | undefined;
}

/** Precisions of an encoder that the engine runs, and a remark if int8 is not among them for a reason of this machine. */
export function enginePrecisions(
  precisions: readonly Precision[],
  { engine, hasModules, pooling, int8 }: EngineFacts,
): { readonly inEngine: readonly EnginePrecision[]; readonly remarks: readonly string[] } {
  const hasPass = engine?.refusal === null && !hasModules && pooling !== 'pooler';
  const reason = int8 === undefined && hasPass && precisions.includes('int8') ? withoutEngineInt8() : null;
  const takesInt8 = hasPass && int8 !== 'onnxruntime' && reason === null;
  return {
    inEngine: precisions.filter(
      (precision) => precision === 'bfloat16' || (precision === 'int8' && takesInt8),
    ) as EnginePrecision[],
    remarks: reason === null ? [] : [`int8 is a graph for onnxruntime, because ${reason}`],
  };
}

/** Writes the weights of an encoder for the engine. */
export function engineWriterOf(precision: EnginePrecision, make: () => readonly NativePart[]): PlannedGraph['write'] {
  return async (folder, { signal, onProgress }) => {
    const name = `model-${precision}.bin`;
    const parts = make();
    const total = nativeBytes(parts);
    let done = 0;
    const onBytes = (bytes: number) => {
      done += bytes;
      onProgress?.(done, total);
    };
    await writeNative(join(folder, name), parts, { signal, onBytes });
    return { path: name, externalData: [] };
  };
}
