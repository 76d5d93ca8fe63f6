import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { writeBallastGraph } from './ballast-graph.ts';
import { startBallast } from './ballast-process.ts';
import { openGpuEncoder, vectorsOf } from './gpu-encoders.ts';
import { freeMemory } from './gpu-machine.ts';
import { agreement, agreementResult, type GpuStep } from './gpu-step.ts';
import { longTexts } from './gpu-texts.ts';

/** Free bytes that are left for the encoder: enough for some texts, not for a large batch. */
const LEFT = 768 * 2 ** 20;
/** More tokens than that memory holds: the inner layer of BERT-base alone has 12 kB a token in float32. */
const LARGE_BATCH = 262_144;

/** Another program takes the GPU's memory; the encoder halves its batches, says so, and gives the same vectors. */
export const memoryStep: GpuStep = {
  name: 'not enough memory for a batch',
  async run(run) {
    const { device } = run;
    if (device !== null && freeMemory(device) === undefined) {
      return { outcome: 'skipped', text: `nvidia-smi does not say how much memory of GPU ${device} is free.` };
    }
    const graph = join(run.folder, 'ballast');
    mkdirSync(graph);
    const path = await writeBallastGraph(join(graph, 'ballast.onnx'));
    const model = run.models[1]!;
    const texts = longTexts(run.small ? 8 : 512, 600);
    const warnings: string[] = [];
    const encoder = await openGpuEncoder(model.folder, {
      precision: 'float32',
      device,
      batchTokens: LARGE_BATCH,
      onWarning: (warning) => warnings.push(warning),
    });
    const ballast = startBallast();
    try {
      await vectorsOf(encoder, texts.slice(0, 1));
      const taken = await ballast.take({ path, device, leave: LEFT });
      if ('error' in taken) return { outcome: 'failed', text: `The memory could not be taken: ${taken.error}` };
      const vectors = await vectorsOf(encoder, texts);
      if (device === null) return { outcome: 'skipped', text: 'A rehearsal on the CPU has memory enough.' };
      if (warnings.length === 0) {
        const free = Math.round((freeMemory(device) ?? Number.NaN) / 2 ** 20);
        return { outcome: 'failed', text: `No batch was divided; ${free} MiB are free.`, figures: taken };
      }
      await ballast.end();
      const roomy = await openGpuEncoder(model.folder, { precision: 'float32', device });
      try {
        const result = agreementResult({
          'beside batches that fit': agreement(vectors, await vectorsOf(roomy, texts), texts.length),
        });
        return { ...result, text: [result.text, ...warnings].join('\n') };
      } finally {
        await roomy.close();
      }
    } finally {
      await ballast.end();
      await encoder.close();
    }
  },
};
