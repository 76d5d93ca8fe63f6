// Times onnxruntime's float32 graphs on one thread: the baseline of the encoder in bfloat16.
//   node onnx.mjs FOLDER_OF_TRAWL FOLDER_OF_MODELS
// FOLDER_OF_TRAWL has node_modules/onnxruntime-node. Prints a JSON object per model and length.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

const [, , trawl, models] = process.argv;
const ort = createRequire(`${trawl}/package.json`)('onnxruntime-node');
const shapes = [
  { name: 'minilm-shape', hidden: 384, layers: 6 },
  { name: 'bert-base-shape', hidden: 768, layers: 12 },
];
for (const { name, hidden, layers } of shapes) {
  const path = `${models}/${name}/model.onnx`;
  if (!existsSync(path)) {
    console.log(JSON.stringify({ hidden, missing: path }));
    continue;
  }
  // As src/embedding/inference/onnx-session.ts opens it.
  const session = await ort.InferenceSession.create(path, {
    executionProviders: ['cpu'],
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
  });
  for (const tokens of [128, 12]) {
    const values = (value) => new ort.Tensor('int64', BigInt64Array.from({ length: tokens }, value), [1, tokens]);
    const feeds = {};
    for (const input of session.inputNames) {
      if (input === 'input_ids') feeds[input] = values((_, i) => BigInt(1000 + ((i * 7919) % 20000)));
      else if (input === 'attention_mask') feeds[input] = values(() => 1n);
      else feeds[input] = values(() => 0n);
    }
    const times = [];
    const end = performance.now() + 2000;
    while (times.length < 10 || performance.now() < end) {
      const started = performance.now();
      await session.run(feeds, [session.outputNames[0]]);
      times.push(performance.now() - started);
    }
    times.splice(0, 3);
    times.sort((a, b) => a - b);
    const gflop = (layers * (tokens * (24 * hidden * hidden) + tokens * tokens * 4 * hidden)) / 1e9;
    const median = times[times.length >> 1];
    console.log(
      JSON.stringify({
        hidden,
        layers,
        tokens,
        threads: 1,
        isa: 'onnxruntime float32',
        median_ms: +median.toFixed(3),
        fastest_ms: +times[0].toFixed(3),
        gflop_per_s: +((gflop / median) * 1e3).toFixed(1),
        runs: times.length,
      }),
    );
  }
  await session.release();
}
