import type { TrawlError } from '../../src/base/errors.ts';
import { invalidModel, type JsonObject } from '../../src/encoder/model/json-file.ts';

/** What to do with a model that Trawl's own graphs cannot compute. */
export const OTHERWISE_SERVED =
  'A server of embeddings that runs the model, such as vLLM, can be used instead: --model http://HOST:PORT (docs/endpoints.md)';

/** Checked access to the values of a checkpoint's config.json. Every method throws MODEL_INVALID for a value that it does not accept. */
export class ConfigReader {
  readonly #config: JsonObject;
  readonly #path: string;

  constructor(config: JsonObject, path: string) {
    this.#config = config;
    this.#path = path;
  }

  /** A whole number from `least`; `otherwise` if the key is absent or null. */
  count(name: string, least: number, otherwise?: number): number {
    const value = this.#config[name] ?? otherwise;
    if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) < 2 ** 31)
      return value as number;
    throw this.#wrong(name, `it must be a whole number from ${least}`);
  }

  /** A norm's epsilon: at least 0 and less than 1. */
  epsilon(name: string, otherwise: number): number {
    const value = this.#config[name] ?? otherwise;
    if (typeof value === 'number' && value >= 0 && value < 1) return value;
    throw this.#wrong(name, `it must be a small number such as ${otherwise}`);
  }

  /** A number greater than 0, for example a rotary base. `value` is what `name` holds. */
  positive(name: string, value: unknown): number {
    if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value;
    throw this.refused(`${name} is ${JSON.stringify(value)}; it must be a number greater than 0`);
  }

  /** The value that `known` gives for the text of a key. */
  choice<T>(name: string, known: Readonly<Record<string, T>>, otherwise: string): T {
    const value = String(this.#config[name] ?? otherwise);
    if (Object.hasOwn(known, value)) return known[value]!;
    throw this.#wrong(name, `expected one of ${Object.keys(known).join(', ')}`);
  }

  /** Refuses any value of a key but `supported`, which is also the meaning of an absent key. */
  require(name: string, supported: unknown): void {
    const value = this.#config[name] ?? supported;
    if (value === supported) return;
    throw this.#wrong(name, `only ${JSON.stringify(supported)} is supported. ${OTHERWISE_SERVED}`);
  }

  flag(name: string, otherwise: boolean): boolean {
    const value = this.#config[name] ?? otherwise;
    if (typeof value === 'boolean') return value;
    throw this.#wrong(name, `it must be true or false`);
  }

  value(name: string): unknown {
    return this.#config[name] ?? undefined;
  }

  refused(what: string): TrawlError {
    return invalidModel(`${this.#path}: ${what}.`);
  }

  #wrong(name: string, expected: string): TrawlError {
    return this.refused(`${name} is ${JSON.stringify(this.#config[name])}; ${expected}`);
  }
}
