import type { ImportRules } from './import-rules.ts';

/** Models: encoders and rerankers. */
export const ENCODERS: ImportRules = {
  // Requests to servers of models; it knows no format.
  'src/model-server/': ['src/errors.ts', 'src/abort.ts', 'src/abortable-fetch.ts', 'src/retry-after.ts'],
  'src/embedding/': [
    'src/errors.ts',
    'src/system/',
    'src/metric.ts',
    'src/abort.ts',
    'src/manifest/',
    'src/package-root.ts',
    'src/queue-clock.ts',
    'src/model-server/',
    'src/options/onnxruntime-telemetry.ts',
    'src/options/cuda-float32.ts',
  ],
  // Encoders behind HTTP.
  'src/embedding/endpoint/': [
    'src/errors.ts',
    'src/base64-vector.ts',
    'src/first-non-finite.ts',
    'src/abort.ts',
    'src/manifest/',
    'src/model-server/',
    'src/embedding/text-encoder.ts',
    'src/embedding/model/',
    'src/embedding/inference/pooling.ts',
  ],
  // model ← tokenizer ← inference (token ids to vectors) ← pool (threads)
  'src/embedding/text-encoder.ts': ['src/errors.ts', 'src/manifest/'],
  'src/embedding/model/': [
    'src/errors.ts',
    'src/metric.ts',
    'src/manifest/',
    'src/system/',
    'src/package-root.ts',
    'src/native/encoder-functions.ts', // the type of the engine's precisions
  ],
  'src/embedding/tokenizer/': [
    'src/errors.ts',
    'src/embedding/text-encoder.ts',
    'src/embedding/model/json-file.ts',
    'src/embedding/model/pair-template.ts',
  ],
  'src/embedding/inference/': [
    'src/errors.ts',
    'src/first-non-finite.ts',
    'src/manifest/',
    'src/system/float16.ts',
    'src/options/onnxruntime-telemetry.ts',
    'src/native/',
    'src/embedding/model/',
    'src/embedding/tokenizer/',
  ],
  'src/embedding/pool/': [
    'src/errors.ts',
    'src/queue-clock.ts',
    'src/options/onnxruntime-telemetry.ts',
    'src/options/cuda-float32.ts',
    'src/embedding/text-encoder.ts',
    'src/embedding/model/',
    'src/embedding/tokenizer/',
    'src/embedding/inference/',
    'src/embedding/endpoint/endpoint-clients.ts',
  ],
  'src/rerank/': ['src/errors.ts', 'src/abort.ts', 'src/model-server/', 'src/embedding/'],
};
