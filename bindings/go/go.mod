module libring/ring

go 1.19
