/** A text, such as a path or an option, without the users and passwords of addresses in it, also of those that are not encoded. */
export function shownPlace(text: string): string {
  return text.replaceAll(/((?:milvus|opensearch)(?:\+\w+)?:\/\/)\S*@/gi, '$1');
}
