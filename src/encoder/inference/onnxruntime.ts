import { createRequire } from 'node:module';
import { TrawlError } from '../../base/errors.ts';
import { disableTelemetry } from '../../base/options/environment.ts';

type Onnxruntime = typeof import('onnxruntime-node');

const require = createRequire(import.meta.url);

/** onnxruntime, loaded by the first call: where it has no binary, all but embedding works without it. Throws ENCODER_MISSING. */
export function onnxruntime(): Onnxruntime {
  disableTelemetry();
  try {
    return require('onnxruntime-node') as Onnxruntime;
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n');
    throw new TrawlError(
      'ENCODER_MISSING',
      `onnxruntime, which runs encoders and rerankers, cannot be loaded on this ${process.platform} ${process.arch}: ${reason}. It ` +
        'has binaries for Linux with glibc and for macOS on arm64. Here, search by words (`trawl index … --bm25` without --model), ' +
        'or name an encoder behind HTTP (--model http://…).',
      { cause: error },
    );
  }
}

export function onnxruntimeProblem(): string | undefined {
  try {
    onnxruntime();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
