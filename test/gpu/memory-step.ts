import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeBallastGraph } from './ballast-graph.ts';
import type { BallastRequest } from './gpu-ballast.ts';
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
    const ballast = fork(fileURLToPath(new URL('./gpu-ballast.js', import.meta.url)));
    try {
      await vectorsOf(encoder, texts.slice(0, 1));
      const request: BallastRequest = { path, device, leave: LEFT };
      ballast.send(request);
      const [taken] = (await once(ballast, 'message')) as [{ parts: number; error?: string }];
      if (taken.error !== undefined)
        return { outcome: 'failed', text: `The memory could not be taken: ${taken.error}` };
      const vectors = await vectorsOf(encoder, texts);
      if (device === null) return { outcome: 'skipped', text: 'A rehearsal on the CPU has memory enough.' };
      if (warnings.length === 0) {
        const free = Math.round(freeMemory(device) / 2 ** 20);
        return { outcome: 'failed', text: `No batch was divided; ${free} MiB are free.`, figures: taken };
      }
      ballast.kill();
      await once(ballast, 'close');
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
      ballast.kill();
      await encoder.close();
    }
  },
};
