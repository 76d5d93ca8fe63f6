/** Figures as the report writes them. */

export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

export function ms(value: number): string {
  const digits = value < 1 ? 2 : value < 100 ? 1 : 0;
  return `${value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ms`;
}

export function bytes(value: number): string {
  return value >= 1e9 ? `${(value / 1e9).toFixed(2)} GB` : `${(value / 1e6).toFixed(value < 1e7 ? 1 : 0)} MB`;
}

export function rate(value: number): string {
  return value < 100 ? value.toFixed(1) : count(value);
}

export function times(value: number): string {
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ×`;
}

export function share(value: number): string {
  return value.toFixed(3);
}
