import type { TrainingRow } from './formats/row-format.ts';
import type { RowEncoder } from './row-encoder.ts';

/** A JSON object a line, or one JSON array of objects. */
export class JsonRows implements RowEncoder {
  readonly #isArray: boolean;
  #isEmpty: boolean;

  constructor(isArray: boolean, isEmpty: boolean) {
    this.#isArray = isArray;
    this.#isEmpty = isEmpty;
  }

  begin(): string {
    return '';
  }

  add(rows: readonly TrainingRow[]): string {
    let text = '';
    for (const { fields } of rows) {
      const json = JSON.stringify(fields);
      text += this.#isArray ? `${this.#isEmpty ? '[' : ','}\n${json}` : `${json}\n`;
      this.#isEmpty = false;
    }
    return text;
  }

  end(): string {
    if (!this.#isArray) return '';
    return this.#isEmpty ? '[]\n' : '\n]\n';
  }

  state(): undefined {
    return undefined;
  }
}
