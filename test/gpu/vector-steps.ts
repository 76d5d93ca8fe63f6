import { openCpuEncoder, openGpuEncoder, vectorsOf } from './gpu-encoders.ts';
import { type Agreement, agreement, agreementResult, type GpuRun, type GpuStep } from './gpu-step.ts';
import { comparedTexts } from './gpu-texts.ts';

const PRECISIONS = ['float32', 'float16'] as const;

/** Vectors of the CPU, by model, which several steps compare with. */
const onCpu = new Map<string, Float32Array>();

function textsOf({ small }: GpuRun): string[] {
  return comparedTexts(small ? 24 : 160);
}

/** Embeds the texts on the CPU, before any step needs the GPU. */
export const cpuStep: GpuStep = {
  name: 'vectors of the CPU',
  async run(run) {
    const texts = textsOf(run);
    for (const { name, folder } of run.models) {
      run.say(`  ${name}`);
      const encoder = await openCpuEncoder(folder);
      try {
        onCpu.set(name, await vectorsOf(encoder, texts));
      } finally {
        await encoder.close();
      }
    }
    return { outcome: 'passed', text: `${run.models.length} models, ${texts.length} texts, float32` };
  },
};

/** Each model in both precisions beside the CPU. */
export const agreementStep: GpuStep = {
  name: 'vectors beside those of the CPU',
  async run(run) {
    const texts = textsOf(run);
    const found: Record<string, Agreement> = {};
    for (const { name, folder } of run.models) {
      for (const precision of PRECISIONS) {
        run.say(`  ${name}, ${precision}`);
        const encoder = await openGpuEncoder(folder, { precision, device: run.device });
        try {
          found[`${name} ${precision}`] = agreement(await vectorsOf(encoder, texts), onCpu.get(name)!, texts.length);
        } finally {
          await encoder.close();
        }
      }
    }
    return agreementResult(found);
  },
};

/**
 * A text has the same vector alone, with others of other lengths, and in another order. A decoder's texts are padded on the right,
 * so that the tokens before its last one are the same in any batch.
 */
export const batchStep: GpuStep = {
  name: 'batches',
  async run(run) {
    const texts = textsOf(run).slice(0, run.small ? 12 : 60);
    const found: Record<string, Agreement> = {};
    for (const { name, folder, isDecoder } of run.models) {
      run.say(`  ${name}`);
      const encoder = await openGpuEncoder(folder, { precision: 'float16', device: run.device });
      try {
        const together = await vectorsOf(encoder, texts);
        const width = encoder.dimension;
        const alone = new Float32Array(together.length);
        for (const [i, text] of texts.entries()) alone.set(await vectorsOf(encoder, [text]), i * width);
        const backwards = await vectorsOf(encoder, texts.toReversed());
        const inOrder = new Float32Array(together.length);
        for (const i of texts.keys()) {
          const from = (texts.length - 1 - i) * width;
          inOrder.set(backwards.subarray(from, from + width), i * width);
        }
        const what = isDecoder ? `${name} (decoder)` : name;
        found[`${what}, together and alone`] = agreement(together, alone, texts.length);
        found[`${what}, in another order`] = agreement(together, inOrder, texts.length);
        if (run.device !== null && encoder.identity.batchInvariant) {
          return { outcome: 'failed', text: 'batchInvariant is true on a GPU' };
        }
      } finally {
        await encoder.close();
      }
    }
    return agreementResult(found);
  },
};

/** Two encoders of one GPU at the same time, and one of all GPUs if there are several. */
export const workersStep: GpuStep = {
  name: 'several encoders',
  async run(run) {
    const texts = textsOf(run);
    const model = run.models[0]!;
    const found: Record<string, Agreement> = {};
    const open = (device: number | null) => openGpuEncoder(model.folder, { precision: 'float16', device });
    const several = run.devices.length > 1 ? run.devices : [run.device, run.device];
    const encoders = await Promise.all(several.map(open));
    try {
      const vectors = await Promise.all(encoders.map((encoder) => vectorsOf(encoder, texts)));
      for (const [i, own] of vectors.entries()) {
        found[`encoder ${i + 1} of ${several.length}`] = agreement(own, onCpu.get(model.name)!, texts.length);
      }
    } finally {
      await Promise.all(encoders.map((encoder) => encoder.close()));
    }
    return agreementResult(found);
  },
};
