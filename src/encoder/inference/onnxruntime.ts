import { createRequire } from 'node:module';
import { TrawlError } from '../../base/errors.ts';
import { disableTelemetry } from '../../base/options/onnxruntime-telemetry.ts';

type Onnxruntime = typeof import('onnxruntime-node');

const require = createRequire(import.meta.url);

/**
 * onnxruntime, whose binary is loaded by the first call: it has none for musl and for macOS on x64, where everything that embeds no
 * text works without it.
 *
 * @throws TrawlError ENCODER_MISSING
 */
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

/** Why onnxruntime cannot be loaded; undefined if it can. */
export function onnxruntimeProblem(): string | undefined {
  try {
    onnxruntime();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
