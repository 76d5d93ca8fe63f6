import type { ImportRules } from './import-rules.ts';

/** Models: encoders and rerankers. */
export const ENCODERS: ImportRules = {
  // Requests to servers of models; it knows no format.
  'src/encoder/model-server/': [
    'src/base/errors.ts',
    'src/base/abort.ts',
    'src/base/net/abortable-fetch.ts',
    'src/base/net/retry-after.ts',
  ],
  'src/encoder/': [
    'src/base/errors.ts',
    'src/base/system/',
    'src/engine/metric.ts',
    'src/base/abort.ts',
    'src/index/manifest/',
    'src/base/package-root.ts',
    'src/base/queue-clock.ts',
    'src/encoder/model-server/',
    'src/base/options/onnxruntime-telemetry.ts',
    'src/base/options/cuda-float32.ts',
  ],
  // Encoders behind HTTP.
  'src/encoder/endpoint/': [
    'src/base/errors.ts',
    'src/base/base64-vector.ts',
    'src/engine/first-non-finite.ts',
    'src/base/abort.ts',
    'src/index/manifest/',
    'src/encoder/model-server/',
    'src/encoder/text-encoder.ts',
    'src/encoder/model/',
    'src/encoder/inference/pooling.ts',
  ],
  // model ← tokenizer ← inference (token ids to vectors) ← pool (threads)
  'src/encoder/text-encoder.ts': ['src/base/errors.ts', 'src/index/manifest/'],
  'src/encoder/model/': [
    'src/base/errors.ts',
    'src/engine/metric.ts',
    'src/index/manifest/',
    'src/base/system/',
    'src/base/package-root.ts',
    'src/engine/native/encoder-functions.ts', // the type of the engine's precisions
  ],
  'src/encoder/tokenizer/': [
    'src/base/errors.ts',
    'src/encoder/text-encoder.ts',
    'src/encoder/model/json-file.ts',
    'src/encoder/model/pair-template.ts',
  ],
  'src/encoder/inference/': [
    'src/base/errors.ts',
    'src/engine/first-non-finite.ts',
    'src/index/manifest/',
    'src/base/system/float16.ts',
    'src/base/options/onnxruntime-telemetry.ts',
    'src/engine/native/',
    'src/encoder/model/',
    'src/encoder/tokenizer/',
  ],
  'src/encoder/pool/': [
    'src/base/errors.ts',
    'src/base/queue-clock.ts',
    'src/base/options/onnxruntime-telemetry.ts',
    'src/base/options/cuda-float32.ts',
    'src/encoder/text-encoder.ts',
    'src/encoder/model/',
    'src/encoder/tokenizer/',
    'src/encoder/inference/',
    'src/encoder/endpoint/endpoint-clients.ts',
  ],
  'src/encoder/rerank/': ['src/base/errors.ts', 'src/base/abort.ts', 'src/encoder/model-server/', 'src/encoder/'],
};
