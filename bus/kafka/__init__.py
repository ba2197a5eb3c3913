"""The bus on Kafka topics, for engines and brokers on more than one machine."""
