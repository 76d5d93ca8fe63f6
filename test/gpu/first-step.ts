import { TrawlError } from '../../src/base/errors.ts';
import { openGpuEncoder, vectorsOf } from './gpu-encoders.ts';
import { missingGpu } from './gpu-machine.ts';
import type { GpuStep } from './gpu-step.ts';

export const FIRST = 'the first run on the GPU';

/** Embeds a text; the steps after it need what this one needs. Any error but that of an unusable GPU is a failure of Trawl. */
export function firstStep(rehearse: boolean, gpus: readonly string[], missingOf = missingGpu): GpuStep {
  return {
    name: FIRST,
    async run({ models, device }) {
      const missing = rehearse ? undefined : missingOf();
      if (missing !== undefined) return { outcome: 'missing', text: missing };
      try {
        const encoder = await openGpuEncoder(models[0]!.folder, { precision: 'float32', device });
        try {
          await vectorsOf(encoder, ['a']);
        } finally {
          await encoder.close();
        }
      } catch (error) {
        const isMissing = !rehearse && error instanceof TrawlError && error.code === 'DEVICE_UNAVAILABLE';
        return { outcome: isMissing ? 'missing' : 'failed', text: (error as Error).message };
      }
      return { outcome: 'passed', text: rehearse ? 'a rehearsal on the CPU: no GPU was used' : gpus.join(', ') };
    },
  };
}
